import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

/** Each line of input is a question: texts to parse and print, or a reader and a writer to compare. */
public class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer(JSON.readTree(line), answer);
            } catch (Exception | StackOverflowError wrong) {
                answer.put("error", String.valueOf(wrong));
            }
            out.println(JSON.writeValueAsString(answer));
        }
        out.flush();
    }

    @SuppressWarnings("deprecation")
    private static void answer(JsonNode question, ObjectNode answer) {
        if (question.has("reader")) {
            compare(parse(question.get("reader").textValue()), parse(question.get("writer").textValue()), answer);
            return;
        }
        Schema.Parser parser = new Schema.Parser(NameValidator.STRICT_VALIDATOR);
        List<Schema> references = new ArrayList<>();
        for (JsonNode reference : question.withArray("references")) {
            references.add(parser.parse(reference.textValue()));
        }
        Schema schema = parser.parse(question.get("text").textValue());
        answer.put("canonical", schema.toString(references, false));
        answer.put("resolved", schema.toString());
    }

    private static Schema parse(String text) {
        return new Schema.Parser(NameValidator.STRICT_VALIDATOR).parse(text);
    }

    private static void compare(Schema reader, Schema writer, ObjectNode answer) {
        ArrayNode found = answer.putArray("incompatibilities");
        SchemaCompatibility.checkReaderWriterCompatibility(reader, writer)
            .getResult()
            .getIncompatibilities()
            .forEach(each -> found.addArray().add(each.getType().name()).add(each.getLocation()).add(each.getMessage()));
    }
}
