import java.lang.reflect.Modifier;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.streams.StreamsConfig;

/**
 * Prints every setting of Kafka Streams and its clients as JSON: name, type, default. Run by hand; see
 * tests/unit/config/java_settings.py for the command.
 */
public class DumpSettings {
    public static void main(String[] arguments) throws Exception {
        StringBuilder out = new StringBuilder("{\n");
        section(out, "streams", StreamsConfig.configDef());
        section(out, "consumer", ConsumerConfig.configDef());
        section(out, "producer", ProducerConfig.configDef());
        section(out, "admin", AdminClientConfig.configDef());
        Map<String, String> topic = new TreeMap<>();
        for (var field : TopicConfig.class.getFields()) {
            if (Modifier.isStatic(field.getModifiers()) && field.getName().endsWith("_CONFIG")) {
                topic.put((String) field.get(null), "{}");
            }
        }
        write(out, "topic", topic);
        out.append("\n}\n");
        System.out.print(out);
    }

    private static void section(StringBuilder out, String name, ConfigDef definition) {
        Map<String, String> settings = new TreeMap<>();
        definition.configKeys().forEach((key, config) -> settings.put(key,
            "{\"type\": " + text(config.type.name().toLowerCase()) + ", \"default\": " + json(config.defaultValue) + "}"));
        write(out, name, settings);
        out.append(",\n");
    }

    private static void write(StringBuilder out, String name, Map<String, String> settings) {
        out.append("  ").append(text(name)).append(": {");
        String separator = "\n";
        for (var setting : settings.entrySet()) {
            out.append(separator).append("    ").append(text(setting.getKey())).append(": ").append(setting.getValue());
            separator = ",\n";
        }
        out.append("\n  }");
    }

    private static String json(Object value) {
        if (value == ConfigDef.NO_DEFAULT_VALUE || value == null) {
            return "null";
        }
        if (value instanceof Number || value instanceof Boolean) {
            return value.toString();
        }
        if (value instanceof Class<?> type) {
            return text(type.getName());
        }
        if (value instanceof java.util.List<?> list) {
            return text(String.join(",", list.stream().map(DumpSettings::name).toList()));
        }
        if (value instanceof org.apache.kafka.common.config.types.Password) {
            return text("[hidden]");
        }
        return text(value.toString());
    }

    private static String name(Object value) {
        return value instanceof Class<?> type ? type.getName() : value.toString();
    }

    private static String text(String value) {
        return "\"" + value.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }
}
