import {
  createServer,
  type IncomingMessage,
  request,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { type ListenOptions, listen } from "./loopback.ts";

/** How long the proxy waits for an answer before it asks why there is none, in milliseconds. */
const PATIENCE_MS = 1000;

/** A proxy in front of `wrangler dev`. */
export interface DevProxy {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Starts a proxy that passes on requests with a valid URL and answers 400 to all other requests, as Weir does in
 * production. The proxy of `wrangler dev` itself builds the URL without a check: it answers 500 to two Host fields, and
 * after `Host: api.example.com#`, every path becomes `/`.
 *
 * While `wrangler dev` cannot build the Worker, it holds all requests. The proxy answers them with 503 and the reason.
 *
 * @param target host and port of `wrangler dev`, which may start after the proxy
 * @param options.whyHeld returns why the Worker cannot be built; undefined if it can
 * @throws if the port is in use
 */
export async function startDevProxy(
  target: { host: string; port: number },
  options: ListenOptions & { whyHeld?: () => Promise<string | undefined> } = {},
): Promise<DevProxy> {
  const { whyHeld = async () => undefined } = options;
  let asking: Promise<string | undefined> | undefined;
  /** Whether requests were held when the proxy last asked. If so, it asks before it passes on the next one. */
  let isHeld = false;

  /** Returns why requests are held. Requests at the same time ask once. */
  async function ask(): Promise<string | undefined> {
    asking ??= whyHeld().finally(() => {
      asking = undefined;
    });
    const reason = await asking;
    isHeld = reason !== undefined;
    return reason;
  }

  /** Waits until a request without an answer turns out to be held. Rejects after the answer. */
  async function untilHeld(answered: AbortSignal): Promise<string> {
    for (;;) {
      await delay(PATIENCE_MS, undefined, { signal: answered });
      const reason = await ask();
      answered.throwIfAborted();
      if (reason !== undefined) return reason;
    }
  }

  // A server with a timeout could close an idle connection while a request arrives on it.
  const server = createServer({ keepAliveTimeout: 0 });
  // The proxy passes on all header fields, without a limit on their number.
  server.maxHeadersCount = 0;

  /** Opens a request to the target with the same method, URL and header fields. */
  function openRequest({ method, url, rawHeaders }: IncomingMessage) {
    return request({ ...target, method, path: url, headers: rawHeaders as never, agent: false });
  }

  server.on("request", async (incoming: IncomingMessage, response: ServerResponse) => {
    function refuse(status: number, detail: string) {
      response.writeHead(status, { ...PROBLEM_HEADERS, connection: "close" });
      response.end(problem(status, detail));
    }
    if (!hasValidUrl(incoming)) return refuse(400, NO_URL);
    const held = isHeld ? await ask() : undefined;
    if (held !== undefined) return refuse(503, held);

    const answered = new AbortController();
    const sent = openRequest(incoming);
    sent.on("response", (answer) => {
      answered.abort();
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.rawHeaders);
      answer.on("error", () => response.destroy()).pipe(response);
    });
    sent.on("error", () => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end("wrangler dev does not answer (yet).\n");
    });
    // If the client hangs up, the proxy hangs up too, so that the Worker notices.
    response.on("close", () => {
      answered.abort();
      sent.destroy();
    });
    incoming.on("error", () => sent.destroy()).pipe(sent);
    // After this answer, `close` ends the request to wrangler.
    untilHeld(answered.signal).then(
      (reason) => refuse(503, reason),
      () => {},
    );
  });

  server.on("upgrade", async (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => {});
    function refuse(status: number) {
      socket.end(`${statusLine(status, STATUS_CODES[status] ?? "")}connection: close\r\n\r\n`);
    }
    if (!hasValidUrl(incoming)) return refuse(400);
    if (isHeld && (await ask()) !== undefined) return refuse(503);
    const sent = openRequest(incoming);
    sent.on("error", () => socket.destroy());
    sent.on("upgrade", (answer, other: Duplex, begun: Buffer) => {
      socket.write(`${headOf(answer)}\r\n`);
      socket.write(begun);
      other.write(head);
      other.on("error", () => socket.destroy()).on("close", () => socket.destroy());
      socket.on("close", () => other.destroy());
      socket.pipe(other).pipe(socket);
    });
    // The event of an answer without an upgrade, such as a denial.
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

const PROBLEM_HEADERS = {
  "content-type": "application/problem+json",
  "cache-control": "no-store",
};

const NO_URL = "The request does not say which host and path it is for.";

function problem(status: number, detail: string): string {
  return `${JSON.stringify({ type: "about:blank", title: STATUS_CODES[status], status, detail })}\n`;
}

/**
 * Whether a request has exactly one Host field, and a valid URL can be built from this field and
 * the request target.
 */
function hasValidUrl({ url = "", rawHeaders }: IncomingMessage): boolean {
  const hosts = rawHeaders.filter(
    (_, at) => at % 2 === 1 && /^host$/i.test(rawHeaders[at - 1] ?? ""),
  );
  const [host = ""] = hosts;
  if (hosts.length !== 1 || !isValidUrl(`http://${host}/`)) return false;
  return isValidUrl(url.startsWith("/") ? `http://${host}${url}` : url);
}

function isValidUrl(url: string): boolean {
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
