import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { type ListenOptions, listen } from "./loopback.ts";

/** What stands before `wrangler dev`. */
export type Front = { url: string; stop(): Promise<void> };

/**
 * Starts a proxy that hands on what Weir would read, and answers 400 to all else, as Weir does in
 * production. `wrangler dev` has a proxy of its own before the Worker, which makes a URL of a request
 * without a check: two Host fields were a 500, and `Host: api.example.com#` made any path `/`.
 *
 * @param target host and port of `wrangler dev`, which may start later
 * @throws when the port is taken.
 */
export async function startFront(
  target: { host: string; port: number },
  options: ListenOptions = {},
): Promise<Front> {
  // No timeout: closing an idle connection could meet a request that has just been sent on it.
  const server = createServer({ keepAliveTimeout: 0 });
  // Every field is handed on, however many there are.
  server.maxHeadersCount = 0;

  /** The same request to the target, its fields as they came. */
  function again({ method, url, rawHeaders }: IncomingMessage) {
    return request({ ...target, method, path: url, headers: rawHeaders as never, agent: false });
  }

  server.on("request", (incoming: IncomingMessage, response: ServerResponse) => {
    if (!isForOneUrl(incoming)) {
      response.writeHead(400, { "content-type": "application/problem+json", connection: "close" });
      response.end(PROBLEM);
      return;
    }
    const sent = again(incoming);
    sent.on("response", (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.rawHeaders);
      answer.on("error", () => response.destroy()).pipe(response);
    });
    sent.on("error", () => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end("wrangler dev does not answer (yet).\n");
    });
    // Who hangs up is gone for the Worker, too.
    response.on("close", () => sent.destroy());
    incoming.on("error", () => sent.destroy()).pipe(sent);
  });

  server.on("upgrade", (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => {});
    if (!isForOneUrl(incoming)) {
      socket.end(`${statusLine(400, "Bad Request")}connection: close\r\n\r\n`);
      return;
    }
    const sent = again(incoming);
    sent.on("error", () => socket.destroy());
    sent.on("upgrade", (answer, other: Duplex, begun: Buffer) => {
      socket.write(`${headOf(answer)}\r\n`);
      socket.write(begun);
      other.write(head);
      other.on("error", () => socket.destroy()).on("close", () => socket.destroy());
      socket.on("close", () => other.destroy());
      socket.pipe(other).pipe(socket);
    });
    // An answer that is no upgrade: a denial, for instance.
    sent.on("response", (answer) => {
      socket.write(
        `${headOf(answer, /^(connection|transfer-encoding)$/i)}connection: close\r\n\r\n`,
      );
      answer.pipe(socket);
    });
    sent.end();
  });

  const { host, port, stop } = await listen(server, options);
  return { url: `http://${host}:${port}`, stop };
}

const PROBLEM = JSON.stringify({
  type: "about:blank",
  title: "Bad Request",
  status: 400,
  detail: "The request does not say which host and path it is for.",
});

/** Whether there is one Host, and whether it and the target make one URL, as the Worker would read it. */
function isForOneUrl({ url = "", rawHeaders }: IncomingMessage): boolean {
  const hosts = rawHeaders.filter(
    (_, at) => at % 2 === 1 && /^host$/i.test(rawHeaders[at - 1] ?? ""),
  );
  const [host = ""] = hosts;
  if (hosts.length !== 1 || !isReadable(`http://${host}/`)) return false;
  return isReadable(url.startsWith("/") ? `http://${host}${url}` : url);
}

function isReadable(url: string): boolean {
  return /^https?:\/\/[^/?#\\@\s]+\//i.test(url) && URL.canParse(url);
}

function headOf(
  { statusCode = 502, statusMessage = "", rawHeaders }: IncomingMessage,
  without?: RegExp,
) {
  let head = statusLine(statusCode, statusMessage);
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (without?.test(rawHeaders[at] as string)) continue;
    head += `${rawHeaders[at]}: ${rawHeaders[at + 1]}\r\n`;
  }
  return head;
}

function statusLine(status: number, message: string): string {
  return `HTTP/1.1 ${status} ${message}\r\n`;
}
