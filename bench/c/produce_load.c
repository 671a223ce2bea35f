/* Sends the same frame again and again over several connections, a number of them under way on each, and waits
   for the answers. Prints the nanoseconds that it took.

   produce_load PORT FRAME CONNECTIONS IN_FLIGHT COUNT */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FRAME = 1 << 20, MOST_ANSWER = 4096 };

static int port, in_flight, count;
static char frame[MOST_FRAME];
static size_t frame_size;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void send_one(int server)
{
    for (size_t sent = 0; sent < frame_size;) {
        ssize_t done = write(server, frame + sent, frame_size - sent);
        if (done <= 0)
            fail("write");
        sent += (size_t)done;
    }
}

/* An answer of Produce version 7 with one topic and one partition. */
static void check(const char *answer)
{
    uint16_t topic_size, error;
    memcpy(&topic_size, answer + 12, 2);
    memcpy(&error, answer + 14 + be16toh(topic_size) + 8, 2);
    if (error) {
        fprintf(stderr, "the answer is error %d\n", be16toh(error));
        exit(1);
    }
}

static void *run(void *unused)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int server = socket(AF_INET, SOCK_STREAM, 0), one = 1, sent = 0;
    if (server < 0 || connect(server, (struct sockaddr *)&address, sizeof address))
        fail("connect");
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    char in[MOST_ANSWER];
    size_t received = 0;
    for (; sent < in_flight && sent < count; sent++)
        send_one(server);
    for (int answered = 0; answered < count;) {
        ssize_t done = read(server, in + received, sizeof in - received);
        if (done <= 0)
            fail("read");
        received += (size_t)done;
        size_t position = 0;
        for (uint32_t size; received - position >= 4; position += size) {
            memcpy(&size, in + position, 4);
            size = 4 + be32toh(size);
            if (received - position < size)
                break;
            check(in + position);
            answered++;
            if (sent < count) {
                send_one(server);
                sent++;
            }
        }
        memmove(in, in + position, received - position);
        received -= position;
    }
    close(server);
    return unused;
}

int main(int argc, char **argv)
{
    FILE *source = argc == 6 ? fopen(argv[2], "rb") : NULL;
    if (!source)
        fail("produce_load PORT FRAME CONNECTIONS IN_FLIGHT COUNT");
    frame_size = fread(frame, 1, sizeof frame, source);
    port = atoi(argv[1]);
    in_flight = atoi(argv[4]);
    int connections = atoi(argv[3]);
    count = atoi(argv[5]) / connections;
    pthread_t threads[connections];
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < connections; i++)
        if (pthread_create(&threads[i], NULL, run, NULL))
            fail("pthread_create");
    for (int i = 0; i < connections; i++)
        pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%lld\n", (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec);
    return 0;
}
