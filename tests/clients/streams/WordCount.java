import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/**
 * Counts the words of "lines" into "counts", exactly once. Arguments: bootstrap address, state folder, how many
 * replicas its own topics have, one if it is not said, and a file with more settings, such as how to log in.
 */
public class WordCount {
    public static void main(String[] arguments) throws InterruptedException, IOException {
        Properties settings = new Properties();
        if (arguments.length > 3) {
            try (Reader file = Files.newBufferedReader(Path.of(arguments[3]))) {
                settings.load(file);
            }
        }
        settings.put("application.id", "words");
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("state.dir", arguments[1]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("commit.interval.ms", "100");
        settings.put("replication.factor", arguments.length > 2 ? arguments[2] : "1");
        settings.put("auto.offset.reset", "earliest");
        // Without the cache every word is an update of its own, and a count that is skipped or repeated shows.
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());

        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("lines")
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word)
            .count()
            .toStream()
            .mapValues(count -> count.toString())
            .to("counts");

        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(wrong -> StreamThreadExceptionResponse.REPLACE_THREAD);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
        Thread.currentThread().join();
    }
}
