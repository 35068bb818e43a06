import type { IncomingMessage, ServerResponse } from "node:http";
import type { FaultyRest, RestFault } from "../../dev/faulty-rest.ts";
import type { Fault } from "./support/fault.ts";

/** The REST server between Weir and Redis. */
export interface RestEnvironment {
  readonly rest: FaultyRest;
  /** The URL of the server to which redirects lead. It records the requests that it gets. */
  readonly elsewhere: string;
}

const DRIP_MS = 40;
const MEBIBYTE = 1024 * 1024;

function json(status: number, body: unknown): RestFault {
  return {
    answer: (_, response) =>
      response
        .writeHead(status, { "content-type": "application/json" })
        .end(typeof body === "string" ? body : JSON.stringify(body)),
  };
}

function raw(write: (socket: NonNullable<ServerResponse["socket"]>) => void): RestFault {
  return { answer: (_, { socket }) => socket && write(socket) };
}

/**
 * Returns a fault that sends `head`, and then one piece after the other until the client closes the
 * connection.
 */
function drip(head: string, next: () => string): RestFault {
  return raw((socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write(next()), DRIP_MS);
    socket.on("close", () => clearInterval(timer)).on("error", () => {});
  });
}

/**
 * Returns a fault that sends an answer of this size. The answer is valid JSON, because JSON allows
 * spaces.
 */
function padded(mebibytes: number): RestFault {
  return {
    answer(_, response) {
      response.on("error", () => {}).write('{"result":[');
      let left = mebibytes;
      const fill = () => {
        while (left-- > 0) if (!response.write(" ".repeat(MEBIBYTE))) return;
        response.end("]}");
      };
      response.on("drain", fill);
      fill();
    },
  };
}

function redirect(status: number, to: (environment: RestEnvironment) => string) {
  return (environment: RestEnvironment): RestFault => ({
    answer: (_: IncomingMessage, response) =>
      response.writeHead(status, { location: to(environment) }).end(),
  });
}

const QUOTA = "ERR max requests limit exceeded. Limit: 500000, Usage: 500000.";
const HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const REPLY = '{"result":[1700000100000,1,1,60000,0,0]}';

/** The faults of the REST server, and of the connection to it. */
const FAULTS: [
  does: string,
  cause: string,
  fault: RestFault | ((s: RestEnvironment) => RestFault),
][] = [
  ["refuses connections", "unreachable", { isClosed: true }],
  ["resets connections", "unreachable", raw((socket) => socket.resetAndDestroy())],
  ["never answers", "timeout", { answer: () => {} }],
  ["sends its header fields byte by byte", "timeout", drip(`${HEAD}X-Slow: `, () => "a")],
  [
    "sends its body byte by byte",
    "timeout",
    drip(`${HEAD}Content-Length: 9999\r\n\r\n{"result":[`, () => " "),
  ],
  ["answers 500", "error-reply", json(500, { error: "ERR internal" })],
  [
    "answers 503 in HTML",
    "invalid-reply",
    { answer: (_, to) => to.writeHead(503, { "content-type": "text/html" }).end("<h1>503</h1>") },
  ],
  ["answers 401", "error-reply", json(401, { error: "WRONGPASS invalid or missing auth token" })],
  ["answers 429", "error-reply", json(429, { error: "ERR too many requests" })],
  ["has used up its quota of commands", "error-reply", json(400, { error: QUOTA })],
  ["answers text that is not JSON", "invalid-reply", json(200, "PONG")],
  ["answers null", "invalid-reply", json(200, null)],
  ["answers JSON of another shape", "invalid-reply", json(200, { result: { admitted: true } })],
  ["answers with too few integers", "invalid-reply", json(200, { result: [1_700_000_100_000, 1] })],
  [
    "counts below zero",
    "invalid-reply",
    json(200, { result: [1_700_000_100_000, 1, -1, 60_000, 0, 0] }),
  ],
  ["never has the script", "error-reply", json(400, { error: "NOSCRIPT No matching script." })],
  [
    "breaks off in its body",
    "unreachable",
    raw((socket) => socket.end(`${HEAD}Content-Length: 4000\r\n\r\n${REPLY.slice(0, 20)}`)),
  ],
  [
    "announces more bytes than it sends",
    "timeout",
    raw((socket) => socket.write(`${HEAD}Content-Length: 4000\r\n\r\n${REPLY}`)),
  ],
  [
    "sends more bytes than it announces",
    "invalid-reply",
    raw((socket) => socket.write(`${HEAD}Content-Length: 20\r\n\r\n${REPLY}`)),
  ],
  [
    "answers without HTTP",
    "unreachable",
    raw((socket) => socket.write("-ERR unknown command\r\n")),
  ],
  ["sends 8 MiB", "invalid-reply", padded(8)],
  ["sends without end", "timeout", drip(`${HEAD}\r\n{"result":[`, () => " ".repeat(64 * 1024))],
  [
    "redirects to another server with 302",
    "invalid-reply",
    redirect(302, ({ elsewhere }) => elsewhere),
  ],
  [
    "redirects to another server with 307",
    "invalid-reply",
    redirect(307, ({ elsewhere }) => elsewhere),
  ],
  ["redirects to itself", "invalid-reply", redirect(307, ({ rest }) => rest.url)],
];

export const REST_FAULTS: readonly Fault<RestEnvironment>[] = FAULTS.map(
  ([does, cause, fault]) => ({
    does,
    cause,
    begin: (environment) =>
      environment.rest.inject(typeof fault === "function" ? fault(environment) : fault),
    end: ({ rest }) => rest.inject(),
  }),
);
