/**
 * The child process with the servers that the Worker calls: the origin, and a REST server that fails on request. They
 * have a process of their own, because the parent sends and measures the load: in one event loop, responses would wait
 * while requests are sent.
 */
import { createServer } from "node:http";
import { startFaultyRest } from "../dev/faulty-rest.ts";
import { listen } from "../dev/loopback.ts";
import { REST_FAULTS, type RestFaultName } from "./rest-faults.ts";

/** A message to the parent: first the addresses, then an acknowledgement of each `BackendRequest`. */
export type BackendMessage =
  | { readonly originUrl: string; readonly restUrl: string; readonly token: string }
  | "injected";

/** A message from the parent. If `inject` is undefined, the REST server works again. */
export interface BackendRequest {
  readonly inject: RestFaultName | undefined;
}

// Normally, the parent ends this process. If the parent has crashed, this process ends itself.
process.on("disconnect", () => process.exit());

const rest = await startFaultyRest(JSON.parse(process.argv[2] ?? "{}"));
const origin = await listen(
  createServer({ keepAliveTimeout: 0 }, (_, response) => response.end("the origin's")),
);

process.on("message", async ({ inject }: BackendRequest) => {
  await rest.inject(inject && REST_FAULTS[inject]);
  send("injected");
});

send({
  originUrl: `http://${origin.host}:${origin.port}`,
  restUrl: rest.url,
  token: rest.token,
});

function send(message: BackendMessage): void {
  process.send?.(message);
}
