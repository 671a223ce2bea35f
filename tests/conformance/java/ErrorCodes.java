import java.lang.reflect.Field;
import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.producer.internals.TransactionManager;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.internals.LogContext;

/**
 * Kafka's error codes, one a line: code, name, base class of its exception in org.apache.kafka.common.errors
 * that says what a client does ("-" for NONE), whether it is retriable, and the state of a transactional
 * producer after a Produce request was answered with it.
 */
final class ErrorCodes {
    private static final String[] FAMILIES = {
        "RefreshRetriableException", "RetriableException", "TransactionAbortableException",
        "ApplicationRecoverableException", "InvalidConfigurationException", "ApiException"
    };

    public static void main(String[] arguments) throws ReflectiveOperationException {
        for (Errors error : Errors.values()) {
            ApiException exception = error.exception();
            boolean retriable = exception instanceof org.apache.kafka.common.errors.RetriableException;
            System.out.println(error.code() + " " + error.name() + " " + family(exception) + " " + retriable
                + " " + stateAfter(exception));
        }
    }

    private static String family(ApiException exception) throws ClassNotFoundException {
        if (exception != null)
            for (String name : FAMILIES)
                if (Class.forName("org.apache.kafka.common.errors." + name).isInstance(exception))
                    return name;
        return "-";
    }

    private static String stateAfter(ApiException exception) throws ReflectiveOperationException {
        Field state = TransactionManager.class.getDeclaredField("currentState");
        state.setAccessible(true);
        TransactionManager manager =
            new TransactionManager(new LogContext(), "id", 60000, 100L, new ApiVersions(), null, false);
        for (Object each : state.getType().getEnumConstants())
            if (each.toString().equals("IN_TRANSACTION"))
                state.set(manager, each);
        if (exception != null)
            manager.maybeTransitionToErrorState(exception);
        return state.get(manager).toString();
    }
}
