import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";

export type Outgoing = {
  method?: string;
  headers?: Record<string, string | string[]>;
  body?: string | Uint8Array;
};

export type Answer = {
  status: number;
  /** By lower-case name. Repeated ones are joined, but for Set-Cookie. */
  headers: IncomingMessage["headers"];
  /** As it came over the wire, still compressed. */
  body: Buffer;
};

/**
 * Begins a request on a connection of its own. Unlike `fetch` it sends the path as it is given,
 * adds no fields, follows nothing and decompresses nothing.
 */
export function open(base: URL, path: string, { method, headers }: Outgoing = {}): ClientRequest {
  const { hostname: host, port } = base;
  return request({ host, port, path, method: method ?? "GET", headers, agent: false });
}

/** Sends a request, and reads the answer to its end. */
export async function send(base: URL, path: string, outgoing: Outgoing = {}): Promise<Answer> {
  const sent = open(base, path, outgoing).end(outgoing.body);
  // With its answer a server may hang up on a body that it does not want; before it, `once` rejects.
  sent.on("error", () => {});
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const { statusCode: status = 0, headers } = response;
  return { status, headers, body: await buffer(response) };
}
