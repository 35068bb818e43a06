import { weir } from "edge-weir";
import config, { DEFAULT_ANSWER, estimate, MAX_ESTIMATE } from "./weir.config.ts";

export { ControlObject, CounterObject } from "edge-weir";

interface Env {
  /** The API keys of the clients, separated by blanks. */
  CLIENT_KEYS: string;
  /** The URL of an API that is compatible with OpenAI's. */
  PROVIDER_URL: string;
  PROVIDER_KEY: string;
}

const limiter = weir(config);

export default {
  fetch(request, env, ctx) {
    return limiter.fetch(request, env, ctx, (admitted) => {
      // A response of 401 costs no tokens, because llmUsage counts error responses as 0.
      const key = admitted.headers.get("x-api-key") ?? "";
      const isKnown = key !== "" && env.CLIENT_KEYS.split(" ").includes(key);
      return isKnown ? callProvider(admitted, env) : new Response("Unknown key", { status: 401 });
    });
  },
} satisfies ExportedHandler<Env>;

/** Calls the provider with its own key. */
async function callProvider(request: Request, env: Env): Promise<Response> {
  let call: {
    stream?: unknown;
    stream_options?: object;
    max_tokens?: unknown;
    max_completion_tokens?: unknown;
    max_output_tokens?: unknown;
  };
  // Weir has reserved at most MAX_ESTIMATE. If the estimate is higher, the call has too many or too
  // long answers, or an odd number such as -1, which some providers read as no limit.
  if ((await estimate(request)) > MAX_ESTIMATE) {
    return new Response("The call may use too many tokens, or is not valid JSON", { status: 400 });
  }
  try {
    call = Object(await request.json());
  } catch {
    return new Response("The body must be JSON", { status: 400 });
  }
  // Some providers read "true" and 1 as true.
  if (typeof (call.stream ?? false) !== "boolean") {
    return new Response("stream must be true or false", { status: 400 });
  }
  // Without this option, the provider does not send the tokens of a stream, and the client would
  // pay only the estimate.
  const usage = { stream_options: { ...call.stream_options, include_usage: true } };
  // Without a maximum, a client could hang up near the end of a long answer and pay less than the
  // provider charges. The call gets the maximum that the estimate has assumed.
  const hasMaximum = (call.max_tokens ?? call.max_completion_tokens ?? null) !== null;
  const maximum = !hasMaximum && { max_tokens: call.max_output_tokens ?? DEFAULT_ANSWER };
  return fetch(new URL("/v1/chat/completions", env.PROVIDER_URL), {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${env.PROVIDER_KEY}` },
    body: JSON.stringify({ ...call, ...maximum, ...(call.stream === true && usage) }),
  });
}
