// `npm run types` compiles this file; nothing runs it. Code on the pages of docs/ is part of it.
import { type LimitResult, WeirService } from "edge-weir";
import { defineConfig } from "edge-weir/config";

const config = defineConfig({
  rules: [
    {
      name: "tokens",
      for: "programs",
      key: "custom:account",
      limit: 100_000,
      window: "1h",
      cost: { reserve: 1200 },
    },
    { name: "renders", for: "programs", key: "custom:account", concurrent: 2 },
  ],
});

class Limits extends WeirService<typeof config> {
  readonly config = config;
}

interface Env {
  readonly LIMITS: Service<Limits>;
}

/** A program may read every field of a result before it knows which result it has. */
export async function settles(env: Env, account: string, callTheModel: () => Promise<number>) {
  const { ok, reserved } = await env.LIMITS.limit("tokens", { key: account, cost: 1200 });
  if (!ok) return new Response(null, { status: 429 });
  const used = await callTheModel();
  if (reserved) await env.LIMITS.settle("tokens", { key: account, reserved, used });
  return new Response();
}

export async function releases(env: Env, account: string, render: () => Promise<void>) {
  const { ok, slot } = await env.LIMITS.limit("renders", { key: account });
  if (ok) await render().finally(() => slot?.release());
}

export function readsEveryField({
  ok,
  retryAfterMs,
  over,
  quotas,
  reserved,
  undecided,
  reason,
}: LimitResult) {
  return [ok, retryAfterMs, over?.[0], quotas?.[0]?.remaining, reserved?.cost, undecided, reason];
}

/** A denial has either a time or the reason why there is none. */
export function waitOf(result: LimitResult): number | "never" | undefined {
  if (result.ok || result.undecided) return undefined;
  return result.reason === "exceeds-limit" ? "never" : result.retryAfterMs;
}
