// Decides requests in a thread of its own, by the same handler as a deployed Worker.
import "./runtime.ts";
import type { LogRequest } from "../../cli/logs/log-request.ts";
import { urlOf } from "../../cli/replay/logged-request.ts";
import { ConfigError, type ConfigInput, defineConfig } from "../../src/config/index.ts";
import { type WeirHandler, weir } from "../../src/entry/weir.ts";
import { type Decided, type Result, requestsOf, type Task } from "./traffic.ts";

let now = 0;
// Nothing else runs in this thread, so its clock shows the time of the request that is being decided.
Date.now = () => now;

const page = globalThis as unknown as {
  onmessage: (event: { readonly data: Task }) => void;
  postMessage(result: Result): void;
};

let last = Promise.resolve();
page.onmessage = ({ data }) => {
  // The tasks share the clock, so each one waits for the previous one.
  last = last.then(async () => page.postMessage({ id: data.id, ...(await resultOf(data)) }));
};

async function resultOf({ input, traffic }: Task): Promise<Omit<Result, "id">> {
  try {
    // The first call finds the faults of the configuration as it was written.
    defineConfig(input as ConfigInput);
    const config = defineConfig({ ...(input as ConfigInput), store: "memory", denialLog: 0 });
    const { requests, unread } = requestsOf(traffic);
    const handler = weir(config);
    const decided: Decided[] = [];
    for (const request of requests) decided.push(await decide(handler, request));
    return { decided, unread };
  } catch (error) {
    if (error instanceof ConfigError) return { faults: error.faults };
    return { faults: [{ path: "", message: (error as Error).message }] };
  }
}

async function decide(handler: WeirHandler, logged: LogRequest): Promise<Decided> {
  now = logged.at;
  let passed = false;
  const response = await handler.fetch(toRequest(logged), {}, undefined, () => {
    passed = true;
    return toResponse(logged);
  });
  // A charge by the response may happen only when its body has been read.
  await response.arrayBuffer();
  const { ip = "", at, method, target } = logged;
  const { status, headers } = response;
  const field = (name: string) => headers.get(name) ?? "";
  return {
    at,
    client: ip,
    request: `${method} ${target}`,
    passed,
    status,
    policy: field("RateLimit-Policy"),
    limit: field("RateLimit"),
    retryAfter: field("Retry-After"),
  };
}

function toRequest({ method, target, host, ip, headers, cf }: LogRequest): Request {
  const request = new Request(urlOf(host, target), { method });
  const fields = new Headers([...(headers ?? [])]);
  if (host !== undefined) fields.set("host", host);
  if (ip !== undefined) fields.set("cf-connecting-ip", ip);
  // In a request, browsers drop some fields, such as cookie.
  return Object.defineProperties(request, { headers: { value: fields }, cf: { value: cf } });
}

function toResponse({ status = 200, responseHeaders }: LogRequest): Response {
  const isPossible = status >= 200 && status <= 599;
  return new Response(null, {
    status: isPossible ? status : 200,
    headers: [...(responseHeaders ?? [])],
  });
}
