package bench;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.IOException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;

/** Jackson, with its reader and writer made once for the type: what its manual advises for speed. */
final class JsonSerde<T> implements Serde<T> {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final ObjectReader reader;
    private final ObjectWriter writer;

    JsonSerde(Class<T> type) {
        reader = MAPPER.readerFor(type);
        writer = MAPPER.writerFor(type);
    }

    @Override
    public Serializer<T> serializer() {
        return (topic, value) -> {
            try {
                return value == null ? null : writer.writeValueAsBytes(value);
            } catch (IOException error) {
                throw new SerializationException("cannot be written to " + topic, error);
            }
        };
    }

    @Override
    public Deserializer<T> deserializer() {
        return (topic, bytes) -> {
            try {
                return bytes == null ? null : reader.readValue(bytes);
            } catch (IOException error) {
                throw new SerializationException("cannot be read from " + topic, error);
            }
        };
    }
}
