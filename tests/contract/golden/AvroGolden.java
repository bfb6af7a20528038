// What Java's Avro makes of the cases in avro_cases.json: the bytes that KafkaAvroSerializer puts behind the frame, the
// JSON encoding, and each value as each reader's schema sees it ("null" where it cannot). Run with Avro 1.12 and Jackson:
//   java -cp avro.jar:jackson-core.jar:jackson-databind.jar:jackson-annotations.jar:slf4j-api.jar:commons-compress.jar \
//     AvroGolden.java < avro_cases.json > avro_golden.json
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.util.HexFormat;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.io.JsonEncoder;

public class AvroGolden {
  static String json(Schema schema, Object value) throws Exception {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    JsonEncoder encoder = EncoderFactory.get().jsonEncoder(schema, out);
    new GenericDatumWriter<Object>(schema).write(value, encoder);
    encoder.flush();
    return out.toString("UTF-8");
  }

  public static void main(String[] args) throws Exception {
    ObjectMapper mapper = new ObjectMapper();
    ArrayNode out = mapper.createArrayNode();
    for (JsonNode one : mapper.readTree(System.in)) {
      Schema schema = new Schema.Parser().parse(one.get("schema").toString());
      ObjectNode entry = out.addObject();
      entry.set("name", one.get("name"));
      entry.set("schema", one.get("schema"));
      entry.set("readers", one.withArray("readers"));
      ArrayNode values = entry.putArray("values");
      for (JsonNode value : one.get("values")) {
        Object datum = new GenericDatumReader<Object>(schema).read(null,
            DecoderFactory.get().jsonDecoder(schema, value.toString()));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(bytes, null);
        new GenericDatumWriter<Object>(schema).write(datum, encoder);
        encoder.flush();
        ObjectNode written = values.addObject();
        written.put("bytes", HexFormat.of().formatHex(bytes.toByteArray()));
        written.put("json", json(schema, datum));
        ArrayNode read = written.putArray("read");
        for (JsonNode text : one.withArray("readers")) {
          Schema reader = new Schema.Parser().parse(text.toString());
          try {
            Object seen = new GenericDatumReader<Object>(schema, reader).read(null,
                DecoderFactory.get().binaryDecoder(bytes.toByteArray(), null));
            read.add(json(reader, seen));
          } catch (Exception error) {
            read.addNull();
          }
        }
      }
    }
    System.out.println(mapper.writerWithDefaultPrettyPrinter().writeValueAsString(out));
  }
}
