import org.apache.rocketmq.broker.BrokerStartup;
import org.apache.rocketmq.store.ha.DefaultHAService;

/**
 * RocketMQ's broker without the port for its replicas: the address of that port cannot be set, so it would
 * listen on all of them. The broker finds {@link Alone} by a file META-INF/service in the class path.
 */
public final class RocketBroker {
    public static void main(String[] arguments) {
        // which knows the class below
        Thread.currentThread().setContextClassLoader(RocketBroker.class.getClassLoader());
        BrokerStartup.main(arguments);
    }

    /** Serves no replicas. */
    public static final class Alone extends DefaultHAService {
        @Override
        public void start() {}
    }
}
