import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.utils.internals.AppInfoParser;

/**
 * Runs Kafka's own classes for the benchmarks, driven over a pipe so that rounds of both sides alternate:
 * one command per line on stdin, one JSON object per line on stdout. CPU time is that of the working thread;
 * the JVM's compiler and collector threads are not counted, in Java's favour.
 *
 * <pre>
 * generate directory=… name=value …      writes a log, see {@link Generate}
 * open workload=… file=… repeat=N        one workload over one file
 * warm seconds=S passes=N                runs it until both are reached
 * run                                    one timed round
 * digest                                 the untimed checksum of the records of the workload
 * batches file=…                         the batches to append
 * append directory=… partitions=N group=G  one timed round, see {@link Appends}
 * load directory=…                       one timed round, see {@link Loads}
 * unload                                 ends it
 * producers before=… batches=…           producer state, see {@link Producers} for its commands
 * open-log directory=…                   a log of transactions, see {@link TransactionLogs}
 * use-log kind=… …                       one timed round over it
 * producer bootstrap=… topic=… id=…      a transactional client, see {@link Transactions}
 * transact prefix=C first=N count=N commit=…  its transactions, timed
 * </pre>
 */
public final class Bench {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private Workloads.Workload workload;
    private Producers producers;
    private int repeat = 1;
    private Appends appends;
    private final Loads loads = new Loads();
    private Transactions transactions;
    private TransactionLogs transactionLogs;

    public static void main(String[] arguments) throws IOException {
        Bench bench = new Bench();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String answer;
            try {
                answer = bench.answer(line.trim().split(" "));
            } catch (Exception | OutOfMemoryError e) {
                answer = "\"error\":\"" + e.toString().replaceAll("[\"\\\\\\p{Cntrl}]", " ") + "\"";
                e.printStackTrace();
            }
            System.out.println("{" + answer + "}");
            System.out.flush();
        }
    }

    private String answer(String[] words) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (int i = 1; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            options.put(pair[0], pair[1]);
        }
        switch (words[0]) {
            case "version":
                return "\"kafka\":\"" + AppInfoParser.getVersion()
                    + "\",\"java\":\"" + Runtime.version() + "\"";
            case "generate":
                return new Generate(options).run();
            case "open":
                workload = Workloads.open(options.get("workload"), Path.of(options.get("file")));
                repeat = Integer.parseInt(options.get("repeat"));
                return "\"open\":true";
            case "warm":
                double seconds = Double.parseDouble(options.get("seconds"));
                return warm(seconds, Integer.parseInt(options.get("passes")));
            case "run":
                return timed();
            case "batches":
                appends = new Appends(Path.of(options.get("file")));
                return "\"open\":true";
            case "append":
                return appends.run(
                    new File(options.get("directory")), Integer.parseInt(options.get("partitions")),
                    Integer.parseInt(options.get("group")));
            case "load":
                return loads.load(new File(options.get("directory")));
            case "unload":
                return loads.unload();
            case "digest":
                Digest digest = new Digest();
                workload.run(digest);
                return digest.json();
            case "producers":
                producers = new Producers(options);
                return "\"open\":true";
            case "ask-producers":
                return producers.answer(options.get("for"));
            case "open-log":
                transactionLogs = new TransactionLogs(new File(options.get("directory")));
                return "\"open\":true";
            case "use-log":
                return transactionLogs.run(options);
            case "producer":
                transactions = new Transactions(options);
                return "\"open\":true";
            case "transact":
                return transactions.run(
                    options.get("prefix"), Integer.parseInt(options.get("first")),
                    Integer.parseInt(options.get("count")), Boolean.parseBoolean(options.get("commit")),
                    options.get("group"));
            default:
                throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private String warm(double seconds, int passes) throws IOException {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        int done = 0;
        while (System.nanoTime() < end || done < passes) {
            workload.run(new Touch());
            done++;
        }
        return "\"passes\":" + done;
    }

    private String timed() throws IOException {
        Touch touch = new Touch();
        if (workload instanceof Workloads.Headers headers)
            headers.batches = headers.sum = 0;
        long wall = System.nanoTime();
        long cpu = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < repeat; i++)
            workload.run(touch);
        cpu = THREADS.getCurrentThreadCpuTime() - cpu;
        wall = System.nanoTime() - wall;
        String totals = workload instanceof Workloads.Headers headers
            ? "\"records\":" + headers.batches + ",\"sum\":" + headers.sum
            : touch.json();
        return totals + ",\"cpu_ns\":" + cpu + ",\"wall_ns\":" + wall;
    }
}
