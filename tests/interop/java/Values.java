import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import java.util.UUID;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.kstream.internals.TimeWindow;

/**
 * Serdes by name, and their values as JSON: bytes in hexadecimal, floating-point numbers by their bits in hexadecimal,
 * windowed keys as [key, start, end]. A windowed key's serde is named "time:SIZE_MS:INNER" or "session:INNER".
 */
final class Values {
    private static final HexFormat HEX = HexFormat.of();

    private Values() {
    }

    static Serde<?> serde(String name) {
        String[] parts = name.split(":");
        return switch (parts[0]) {
            case "string" -> Serdes.String();
            case "long" -> Serdes.Long();
            case "integer" -> Serdes.Integer();
            case "short" -> Serdes.Short();
            case "double" -> Serdes.Double();
            case "float" -> Serdes.Float();
            case "bytes" -> Serdes.Bytes();
            case "bytearray" -> Serdes.ByteArray();
            case "bytebuffer" -> Serdes.ByteBuffer();
            case "uuid" -> Serdes.UUID();
            case "boolean" -> Serdes.Boolean();
            case "void" -> Serdes.Void();
            case "time" -> new WindowedSerdes.TimeWindowedSerde<>(serde(parts[2]), Long.parseLong(parts[1]));
            case "session" -> new WindowedSerdes.SessionWindowedSerde<>(serde(parts[1]));
            default -> throw new IllegalArgumentException("no serde is named " + name);
        };
    }

    static Object parse(String name, JsonNode json) {
        if (json.isNull()) {
            return null;
        }
        String[] parts = name.split(":");
        return switch (parts[0]) {
            case "string" -> json.textValue();
            case "long" -> json.longValue();
            case "integer" -> json.intValue();
            case "short" -> json.shortValue();
            case "double" -> Double.longBitsToDouble(Long.parseUnsignedLong(json.textValue(), 16));
            case "float" -> Float.intBitsToFloat(Integer.parseUnsignedInt(json.textValue(), 16));
            case "bytes" -> Bytes.wrap(HEX.parseHex(json.textValue()));
            case "bytearray" -> HEX.parseHex(json.textValue());
            case "bytebuffer" -> ByteBuffer.wrap(HEX.parseHex(json.textValue()));
            case "uuid" -> UUID.fromString(json.textValue());
            case "boolean" -> json.booleanValue();
            case "time" -> new Windowed<>(
                parse(parts[2], json.get(0)), new TimeWindow(json.get(1).longValue(), json.get(2).longValue()));
            case "session" -> new Windowed<>(
                parse(parts[1], json.get(0)), new SessionWindow(json.get(1).longValue(), json.get(2).longValue()));
            default -> throw new IllegalArgumentException("no serde is named " + name);
        };
    }

    static Object show(String name, Object value) {
        if (value == null) {
            return null;
        }
        String[] parts = name.split(":");
        return switch (parts[0]) {
            case "double" -> String.format("%016x", Double.doubleToLongBits((Double) value));
            case "float" -> String.format("%08x", Float.floatToIntBits((Float) value));
            case "bytes" -> HEX.formatHex(((Bytes) value).get());
            case "bytearray" -> HEX.formatHex((byte[]) value);
            case "bytebuffer" -> {
                ByteBuffer buffer = ((ByteBuffer) value).duplicate();
                byte[] data = new byte[buffer.remaining()];
                buffer.get(data);
                yield HEX.formatHex(data);
            }
            case "uuid" -> value.toString();
            case "time", "session" -> {
                Windowed<?> windowed = (Windowed<?>) value;
                Object key = show(parts[parts.length - 1], windowed.key());
                yield List.of(key, windowed.window().start(), windowed.window().end());
            }
            default -> value;
        };
    }
}
