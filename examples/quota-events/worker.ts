import { weir } from "edge-weir";
import type { QuotaEvent } from "edge-weir/config";
import config from "./weir.config.ts";

export { ControlObject, CounterObject } from "edge-weir";

/**
 * Posts an event with its signature, as Standard Webhooks describes it. Returns whether the server has accepted it.
 *
 * @param secret `whsec_` and at least 24 bytes in base64
 */
async function deliver(event: QuotaEvent, url: string, secret: string): Promise<boolean> {
  const id = `${event.policy}:${event.client}:${event.share}:${event.resetAt}`;
  const [body, time] = [JSON.stringify(event), String(Math.floor(Date.now() / 1000))];
  const bytes = (text: string) => new TextEncoder().encode(text);
  const hmac = { name: "HMAC", hash: "SHA-256" };
  const secretBytes = Uint8Array.from(atob(secret.replace("whsec_", "")), (each) =>
    each.charCodeAt(0),
  );
  const key = await crypto.subtle.importKey("raw", secretBytes, hmac, false, ["sign"]);
  const mac = await crypto.subtle.sign("HMAC", key, bytes(`${id}.${time}.${body}`));
  const signature = `v1,${btoa(String.fromCharCode(...new Uint8Array(mac)))}`;
  const signed = { "webhook-id": id, "webhook-timestamp": time, "webhook-signature": signature };
  const headers = { "content-type": "application/json", ...signed };
  const signal = AbortSignal.timeout(10_000);
  const sent = fetch(url, { method: "POST", headers, body, signal, redirect: "manual" });
  return sent.then(({ ok }) => ok).catch(() => false);
}

export default {
  fetch: weir(config).fetch,
  async queue(
    batch: MessageBatch<QuotaEvent>,
    env: { WEBHOOK_URL: string; WEBHOOK_SECRET: string },
  ) {
    for (const message of batch.messages) {
      if (await deliver(message.body, env.WEBHOOK_URL, env.WEBHOOK_SECRET)) message.ack();
      // The waits grow from two minutes to twelve hours.
      else message.retry({ delaySeconds: Math.min(43_200, 60 * 2 ** message.attempts) });
    }
  },
};
