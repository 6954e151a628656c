import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.FileDescriptor;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Apache Kafka's command-line classes one after the other in one JVM, since starting a JVM costs more than any of
 * them. A line asks {"class": ..., "args": [...], "stdin": ...}; the reply is {"exit": ..., "out": ..., "err": ...}.
 */
public final class ToolHost {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final class Exited extends RuntimeException {
        private final int status;

        private Exited(int status, String message) {
            super(message, null, false, false);
            this.status = status;
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream replies = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8));
        System.setOut(System.err);
        Exit.setExitProcedure((status, message) -> {
            throw new Exited(status, message);
        });
        Exit.setHaltProcedure((status, message) -> {
            throw new Exited(status, message);
        });
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            replies.println(JSON.writeValueAsString(run(JSON.readTree(line))));
        }
    }

    private static ObjectNode run(JsonNode request) throws Exception {
        String[] arguments = JSON.convertValue(request.get("args"), String[].class);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        PrintStream realOut = System.out;
        PrintStream realErr = System.err;
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        System.setIn(new ByteArrayInputStream(request.get("stdin").asText().getBytes(StandardCharsets.UTF_8)));
        int status;
        try {
            status = call(Class.forName(request.get("class").asText()), arguments);
        } finally {
            System.out.flush();
            System.err.flush();
            System.setOut(realOut);
            System.setErr(realErr);
        }
        ObjectNode reply = JSON.createObjectNode();
        reply.put("exit", status);
        reply.put("out", out.toString(StandardCharsets.UTF_8));
        reply.put("err", err.toString(StandardCharsets.UTF_8));
        return reply;
    }

    private static int call(Class<?> tool, String[] arguments) throws Exception {
        try {
            tool.getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException failure) {
            if (failure.getCause() instanceof Exited exited) {
                if (exited.getMessage() != null) {
                    System.err.println(exited.getMessage());
                }
                return exited.status;
            }
            failure.getCause().printStackTrace(System.err);
            return 1;
        }
    }
}
