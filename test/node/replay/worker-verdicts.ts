import { Miniflare } from "miniflare";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import { bundleForWorkerd, workerConfig } from "../../../dev/workerd.ts";
import type { ConfigInput } from "../../../src/config/index.ts";

/** The decision of the real Worker. */
export interface WorkerVerdict {
  /** `refused`: the Worker answered before it read the rules. */
  readonly outcome: "allowed" | "limited" | "undecided" | "unmatched" | "refused";
  /** The policies of enforced rules, of `mark` rules and of shadow rules that the request exceeds. */
  readonly exceeded: readonly string[];
}

/** The number of requests in one call to the Worker. */
const BATCH = 500;

const IMPORTS = `
  export { Limiter } from "./src/limiter/limiter.ts";
  export { CounterObject, weir } from "./src/index.ts";
  export { defineConfig } from "./src/config/index.ts";
`;

/**
 * Decides logged requests with Weir's Worker in workerd, one after the other. The clock of the Worker shows
 * the time of each request, and the origin answers as logged.
 */
export async function workerVerdicts(
  config: ConfigInput,
  requests: readonly LogRequest[],
): Promise<WorkerVerdict[]> {
  const weir = await bundleForWorkerd({
    stdin: { contents: IMPORTS, resolveDir: process.cwd() },
  });
  const runtime = new Miniflare({
    workers: [
      {
        config: workerConfig("weir", { "main.mjs": mainModule(config), "weir.mjs": weir }),
        dev: { unsafeDirectSockets: [{}], stripCfConnectingIp: false },
      },
    ],
    handleStructuredLogs: () => {},
  });
  try {
    const url = await runtime.unsafeGetDirectURL("weir");
    const verdicts: WorkerVerdict[] = [];
    for (let start = 0; start < requests.length; start += BATCH) {
      const batch = requests.slice(start, start + BATCH).map(plainRequest);
      const response = await fetch(url, { method: "POST", body: JSON.stringify(batch) });
      verdicts.push(...((await response.json()) as WorkerVerdict[]));
    }
    return verdicts;
  } finally {
    await runtime.dispose();
  }
}

function plainRequest({ headers, responseHeaders, ...request }: LogRequest) {
  return {
    ...request,
    headers: [...(headers ?? [])],
    responseHeaders: [...(responseHeaders ?? [])],
  };
}

const mainModule = (config: ConfigInput) => `
  import { defineConfig, Limiter, weir } from "./weir.mjs";
  let now = 0;
  Date.now = () => now;
  let decision;
  const { decide } = Limiter.prototype;
  Limiter.prototype.decide = function (...args) {
    decision = decide.apply(this, args);
    return decision;
  };
  const handler = weir(defineConfig(${JSON.stringify(config)}));
  const violated = (quotas) => quotas.filter((quota) => quota.violated).map(({ policy }) => policy);

  async function verdictOn({ at, host, target, method, ip, status, headers, responseHeaders, cf }) {
    now = at;
    decision = undefined;
    const sent = new Headers(headers);
    if (ip !== undefined) sent.set("cf-connecting-ip", ip);
    const request = new Request("https://" + host + target, { method, headers: sent, cf });
    const tasks = [];
    const ctx = { waitUntil: (task) => tasks.push(task) };
    const origin = () => new Response(null, { status, headers: responseHeaders });
    const response = await handler.fetch(request, {}, ctx, origin);
    // Rules in shadow mode are charged in the background.
    for (let turn = 0; turn < 50; turn++) await undefined;
    if (!decision) {
      return { outcome: [400, 414].includes(response.status) ? "refused" : "unmatched", exceeded: [] };
    }
    const { outcome, quotas = [], verdicts = [] } = await decision;
    const shadow = (await Promise.all(verdicts.map((each) => each.pendingVerdict ?? []))).flat();
    return { outcome, exceeded: [...violated(quotas), ...violated(shadow.flatMap((each) => each.quotas))] };
  }

  export default {
    async fetch(request) {
      const verdicts = [];
      for (const each of await request.json()) verdicts.push(await verdictOn(each));
      return Response.json(verdicts);
    },
  };
`;
