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
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Apache Kafka's command-line classes one after the other in one JVM, since starting a JVM costs more than any of
 * them. A line asks {"class": ..., "args": [...], "stdin": ...}; the reply is {"exit": ..., "out": ..., "err": ...}.
 */
public final class ToolHost {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<Runnable> SHUTDOWN_HOOKS = new ArrayList<>();
    private static Ended ended;

    /** How a tool ended: some catch what the exit procedure throws and exit once more, so only the first counts. */
    private record Ended(int status, String err) {}

    private static final class Exited extends RuntimeException {
        private Exited(String message) {
            super(message, null, false, false);
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream replies = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8));
        System.setOut(System.err);
        Exit.setShutdownHookAdder((name, hook) -> SHUTDOWN_HOOKS.add(hook));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            replies.println(JSON.writeValueAsString(run(JSON.readTree(line))));
        }
    }

    private static ObjectNode run(JsonNode request) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        PrintStream realOut = System.out;
        PrintStream realErr = System.err;
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        System.setIn(new ByteArrayInputStream(request.get("stdin").asText().getBytes(StandardCharsets.UTF_8)));
        ended = null;
        Exit.Procedure end = (status, message) -> {
            String said = err.toString(StandardCharsets.UTF_8) + (message == null ? "" : message);
            ended = ended == null ? new Ended(status, said) : ended;
            throw new Exited(message);
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        try {
            call(Class.forName(request.get("class").asText()), JSON.convertValue(request.get("args"), String[].class));
            SHUTDOWN_HOOKS.forEach(Runnable::run);
        } finally {
            SHUTDOWN_HOOKS.clear();
            System.setOut(realOut);
            System.setErr(realErr);
        }
        ObjectNode reply = JSON.createObjectNode();
        reply.put("exit", ended == null ? 0 : ended.status);
        reply.put("out", out.toString(StandardCharsets.UTF_8));
        reply.put("err", ended == null ? err.toString(StandardCharsets.UTF_8) : ended.err);
        return reply;
    }

    private static void call(Class<?> tool, String[] arguments) throws Exception {
        try {
            tool.getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException failure) {
            if (ended == null) {
                failure.getCause().printStackTrace(System.err);
                ended = new Ended(1, failure.getCause().toString());
            }
        }
    }
}
