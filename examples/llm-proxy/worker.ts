import { weir } from "edge-weir";
import config from "./weir.config.ts";

export { CounterObject } from "edge-weir";

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
  };
  try {
    call = Object(await request.json());
  } catch {
    return new Response("The body must be JSON", { status: 400 });
  }
  // Without this option, the provider does not send the tokens of a stream, and the client would
  // pay only the estimate.
  const usage = { stream_options: { ...call.stream_options, include_usage: true } };
  // Without a maximum, a client could hang up near the end of a long answer and pay less than the
  // provider charges. The number is the `output` of llmReserve.
  const maximum = !(call.max_tokens || call.max_completion_tokens) && { max_tokens: 1000 };
  return fetch(new URL("/v1/chat/completions", env.PROVIDER_URL), {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${env.PROVIDER_KEY}` },
    body: JSON.stringify({ ...call, ...maximum, ...(call.stream === true && usage) }),
  });
}
