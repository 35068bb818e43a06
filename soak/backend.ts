/**
 * The child process with what stands behind the Worker: the origin, and a REST server before Redis
 * that fails when it is told to. In a process of its own, since the load is made and measured in the
 * parent, and on one event loop answers would wait for requests that are being sent.
 */
import { createServer } from "node:http";
import { startFaultyRest } from "../dev/faulty-rest.ts";
import { listen } from "../dev/loopback.ts";
import { REST_FAULTS, type RestFaultName } from "./rest-faults.ts";

export type FromBackend = { originUrl: string; restUrl: string; token: string } | "injected";
export type ToBackend = { inject: RestFaultName | undefined };

// Without the parent there is nobody to end this process.
process.on("disconnect", () => process.exit());

const rest = await startFaultyRest(JSON.parse(process.argv[2] ?? "{}"));
const origin = await listen(
  createServer({ keepAliveTimeout: 0 }, (_, response) => response.end("the origin's")),
);

process.on("message", async ({ inject }: ToBackend) => {
  await rest.inject(inject && REST_FAULTS[inject]);
  tell("injected");
});

tell({
  originUrl: `http://${origin.host}:${origin.port}`,
  restUrl: rest.url,
  token: rest.token,
});

function tell(message: FromBackend): void {
  process.send?.(message);
}
