import type { Limits } from "../limits/worker.ts";

interface Env {
  LIMITS: Service<Limits>;
}

export default {
  async fetch(request, env) {
    const { searchParams } = new URL(request.url);
    const key = searchParams.get("account");
    if (!key) return new Response("The parameter account is missing.", { status: 400 });

    const { ok, undecided, retryAfterMs } = await env.LIMITS.limit("reports", { key });
    if (ok) return new Response("The report.");
    if (undecided) return new Response("Try again shortly.", { status: 503 });

    // The account has no quota left in this window. A report can wait, so reserve quota of the next window.
    const reserved = await env.LIMITS.limit("reports", { key, reserve: true });
    const waitMs = reserved.retryAfterMs ?? retryAfterMs;
    // An operator has set the limit to 0.
    if (waitMs === undefined) return new Response(null, { status: 429 });
    const seconds = Math.ceil(waitMs / 1000);
    return reserved.ok
      ? new Response(`The report follows in ${seconds} s.`, { status: 202 })
      : new Response(null, { status: 429, headers: { "Retry-After": String(seconds) } });
  },
} satisfies ExportedHandler<Env>;
