/* The system calls of durable transactions of one record, and nothing else: what each request writes, syncs and
   answers, as many bytes as a broker would. One connection; a request is one byte and padding:
     a  a partition joins:   state written, synced, answered
     p  a record:            data written, synced, answered
     e  the end:             state written, synced, marker written, answered; marker synced, state written
   Prints its address; ends when the client closes the connection.

   transaction_calls STATE_FILE DATA_FILE */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STATE = 110, DATA = 170, MARKER = 78, ANSWER = 40, FRAME = 512 };

static char bytes[FRAME];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

struct log {
    int file;
    off_t size;
};

static struct log opened(const char *path)
{
    struct log log = {open(path, O_RDWR | O_CREAT | O_TRUNC, 0644), 0};
    if (log.file < 0)
        fail(path);
    return log;
}

static void append(struct log *log, size_t size)
{
    if (pwrite(log->file, bytes, size, log->size) != (ssize_t)size)
        fail("pwrite");
    log->size += (off_t)size;
}

static void sync_log(const struct log *log)
{
    if (fdatasync(log->file))
        fail("fdatasync");
}

static void answer(int connection)
{
    if (write(connection, bytes, ANSWER) != ANSWER)
        fail("write");
}

static void serve(int connection, char request, struct log *state, struct log *data)
{
    if (request == 'p') {
        append(data, DATA);
        sync_log(data);
        answer(connection);
        return;
    }
    append(state, STATE);
    sync_log(state);
    if (request == 'a') {
        answer(connection);
        return;
    }
    append(data, MARKER);
    answer(connection);
    sync_log(data);
    append(state, STATE);
}

static int connected(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int one = 1, connection, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1))
        fail("listen");
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    if ((connection = accept(listener, NULL, NULL)) < 0)
        fail("accept");
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return connection;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "transaction_calls STATE_FILE DATA_FILE\n");
        return 1;
    }
    struct log state = opened(argv[1]), data = opened(argv[2]);
    int connection = connected(), loop = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(loop, EPOLL_CTL_ADD, connection, &event);
    for (;;) {
        char request[FRAME];
        epoll_wait(loop, &event, 1, -1);
        if (read(connection, request, sizeof request) <= 0)
            return 0;
        serve(connection, request[0], &state, &data);
    }
}
