import { env } from "cloudflare:workers";
import type { ControlApi } from "../../src/control/protocol.ts";

const HOUR_MS = 3_600_000;

/** Sets an override of the measured rule, and one of a client that sends no requests. */
export async function setOverrides(): Promise<Response> {
  const { WEIR_CONTROL } = env as unknown as { readonly WEIR_CONTROL: DurableObjectNamespace };
  const control = WEIR_CONTROL.getByName("global") as unknown as ControlApi;
  const fields = { rule: "limited", expiresAt: Date.now() + HOUR_MS, reason: "the bench" };
  await control.setOverride({ ...fields, effect: { factor: 2 } }, "bench");
  const client = "A".repeat(22);
  await control.setOverride({ ...fields, client, effect: { kind: "blocked" } }, "bench");
  return new Response("set");
}
