/* The least that a server of produce requests can do: one epoll loop that reads frames, writes their records to
   a file and answers. Produce version 7, one topic, one partition a request. Prints its address; ends with
   SIGTERM, or when a client sends what it does not understand.

   produce_server FILE */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECEIVE = 256 << 10, SEND = 64 << 10, EVENTS = 64 };

struct connection {
    int socket;
    size_t received, unsent;
    char in[RECEIVE], out[SEND];
};

static int file;
static int64_t next_offset, file_size;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int16_t get16(const char *p) { uint16_t v; memcpy(&v, p, 2); return (int16_t)be16toh(v); }
static int32_t get32(const char *p) { uint32_t v; memcpy(&v, p, 4); return (int32_t)be32toh(v); }
static char *put16(char *p, int16_t v) { uint16_t b = htobe16((uint16_t)v); memcpy(p, &b, 2); return p + 2; }
static char *put32(char *p, int32_t v) { uint32_t b = htobe32((uint32_t)v); memcpy(p, &b, 4); return p + 4; }
static char *put64(char *p, int64_t v) { uint64_t b = htobe64((uint64_t)v); memcpy(p, &b, 8); return p + 8; }

/* Behind a string of Kafka's, which may be null. */
static const char *after_string(const char *p)
{
    int16_t size = get16(p);
    return p + 2 + (size > 0 ? size : 0);
}

/* One request, which is complete; appends its answer. */
static void serve(struct connection *c, const char *frame)
{
    if (get16(frame) != 0 || get16(frame + 2) != 7) {
        fprintf(stderr, "API %d version %d is not served\n", get16(frame), get16(frame + 2));
        exit(1);
    }
    int32_t correlation_id = get32(frame + 4);
    const char *topic = after_string(after_string(frame + 8)) + 2 + 4 + 4; /* acks, timeout, topics */
    size_t topic_size = 2 + (size_t)get16(topic);
    const char *partition = topic + topic_size + 4; /* partitions */
    int32_t size = get32(partition + 4);
    const char *records = partition + 8;
    if (pwrite(file, records, (size_t)size, file_size) != size)
        fail("pwrite");
    file_size += size;
    char *begin = c->out + c->unsent, *p = put32(begin + 4, correlation_id);
    p = put32(p, 1);
    memcpy(p, topic, topic_size);
    p = put32(p + topic_size, 1);
    p = put32(p, get32(partition));
    p = put16(p, 0);
    p = put64(p, next_offset);
    p = put64(p, -1); /* append time */
    p = put64(p, 0);  /* log start offset */
    p = put32(p, 0);  /* throttle time */
    put32(begin, (int32_t)(p - begin - 4));
    c->unsent += (size_t)(p - begin);
    next_offset += get32(records + 57); /* the number of records */
}

static void send_answers(struct connection *c)
{
    for (size_t sent = 0; sent < c->unsent;) {
        ssize_t count = write(c->socket, c->out + sent, c->unsent - sent);
        if (count < 0 && errno != EAGAIN)
            fail("write");
        sent += count > 0 ? (size_t)count : 0;
    }
    c->unsent = 0;
}

/* Reads what is there and serves what is complete; whether the client is still connected. */
static int on_readable(struct connection *c)
{
    ssize_t count = read(c->socket, c->in + c->received, RECEIVE - c->received);
    if (count <= 0)
        return count < 0 && errno == EAGAIN;
    c->received += (size_t)count;
    size_t position = 0;
    while (c->received - position >= 4) {
        size_t size = 4 + (size_t)get32(c->in + position);
        if (size > RECEIVE || c->unsent + 512 > SEND) {
            fprintf(stderr, "a frame of %zu bytes, %zu unsent\n", size, c->unsent);
            exit(1);
        }
        if (c->received - position < size)
            break;
        serve(c, c->in + position + 4);
        position += size;
    }
    memmove(c->in, c->in + position, c->received - position);
    c->received -= position;
    send_answers(c);
    return 1;
}

static int listening(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) || listen(listener, EVENTS))
        fail("listen");
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

static void accept_one(int loop, int listener)
{
    int one = 1;
    struct connection *c = calloc(1, sizeof *c);
    if (!c || (c->socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) < 0)
        fail("accept");
    setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(loop, EPOLL_CTL_ADD, c->socket, &event);
}

int main(int argc, char **argv)
{
    if (argc != 2 || (file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644)) < 0)
        fail("produce_server FILE");
    int loop = epoll_create1(0), listener = listening();
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, ready[EVENTS];
    epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(loop, ready, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct connection *c = ready[i].data.ptr;
            if (!c)
                accept_one(loop, listener);
            else if (!on_readable(c)) {
                close(c->socket);
                free(c);
            }
        }
    }
}
