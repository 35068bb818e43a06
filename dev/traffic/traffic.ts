import { createPlan } from "./plan.ts";

/** Traffic that runs until it is stopped. */
export interface Traffic {
  stop(): Promise<void>;
}

/** The maximum number of open requests, in case the Worker does not answer. */
const MAX_OPEN = 100;
const SHADOW_RULE = "search-address";
const REASON = "npm run dev -- --traffic: shows a rule in shadow mode";

/**
 * Sends invented traffic to a Worker, and puts a rule into shadow mode with a lower limit while the traffic runs, so
 * that requests over the limit can be seen. A missing rule, or a rule with an override, stays as it is.
 *
 * @param url the Worker
 * @param token the token of its admin surface
 */
export async function startTraffic(url: string, token: string): Promise<Traffic> {
  const plan = createPlan(Date.now());
  const stopping = new AbortController();
  const open = new Set<Promise<void>>();

  function send({ method, path, headers }: ReturnType<typeof plan.requestsOf>[number]) {
    if (open.size >= MAX_OPEN) return;
    const sent = fetch(`${url}${path}`, {
      method,
      headers,
      signal: stopping.signal,
      redirect: "manual",
    })
      .then(async (response) => {
        await response.body?.cancel();
      })
      // While the Worker is built again, it does not answer.
      .catch(() => {})
      .finally(() => {
        open.delete(sent);
      });
    open.add(sent);
  }

  const hasOverride = await setShadow(url, token);
  let second = 0;
  const timer = setInterval(() => {
    // The requests are spread over the second, like requests of many clients.
    const requests = plan.requestsOf(second++);
    requests.forEach((request, index) => {
      setTimeout(() => stopping.signal.aborted || send(request), (index * 1000) / requests.length);
    });
  }, 1000);

  return {
    async stop() {
      clearInterval(timer);
      stopping.abort();
      await Promise.all(open);
      if (hasOverride) await callApi(url, token, "DELETE", { id: SHADOW_RULE, why: REASON });
    },
  };
}

/** @returns whether this call has set an override, which must be removed in the end */
async function setShadow(url: string, token: string): Promise<boolean> {
  const { overrides } = (await callApi(url, token, "GET")) ?? {};
  if (!Array.isArray(overrides)) return false;
  if (overrides.some(({ rule, client }) => rule === SHADOW_RULE && client === undefined))
    return false;
  const answer = await callApi(url, token, "PUT", {
    rule: SHADOW_RULE,
    effect: { mode: "shadow", factor: 0.2 },
    expiresIn: "1d",
    reason: REASON,
  });
  return answer?.override !== undefined;
}

/** @returns undefined if the call fails, because the traffic is useful without the override */
async function callApi(
  url: string,
  token: string,
  method: string,
  body?: object,
): Promise<Record<string, unknown> | undefined> {
  try {
    const response = await fetch(`${url}/_weir/api/overrides`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      signal: AbortSignal.timeout(5000),
      redirect: "manual",
      ...(body && { body: JSON.stringify(body) }),
    });
    return (await response.json()) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
