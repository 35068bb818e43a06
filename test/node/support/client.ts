import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";

/** The parts of a request, without its URL. */
export interface Outgoing {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Uint8Array;
}

export interface Answer {
  readonly status: number;
  /** The header fields, by lower-case name. Repeated fields are joined, except Set-Cookie. */
  readonly headers: IncomingMessage["headers"];
  /** The bytes that were received, still compressed. */
  readonly body: Buffer;
}

/**
 * Begins a request on a new connection. Unlike `fetch`, it sends the path unchanged, adds no fields,
 * follows no redirects and decompresses no body.
 */
export function open(base: URL, path: string, { method, headers }: Outgoing = {}): ClientRequest {
  const { hostname: host, port } = base;
  return request({ host, port, path, method: method ?? "GET", headers, agent: false });
}

/** Sends a request, and reads the whole response. */
export async function send(base: URL, path: string, outgoing: Outgoing = {}): Promise<Answer> {
  const sent = open(base, path, outgoing).end(outgoing.body);
  // A server may close the connection after its response without reading the whole body, so errors
  // after the response are ignored. If an error comes before the response, `once` rejects.
  sent.on("error", () => {});
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const { statusCode: status = 0, headers } = response;
  return { status, headers, body: await buffer(response) };
}
