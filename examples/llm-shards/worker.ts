import { RateLimitError, WeirService } from "edge-weir";
import config from "./weir.config.ts";

export { ControlObject, CounterObject } from "edge-weir";

export class Limits extends WeirService<typeof config> {
  readonly config = config;
}

interface Env {
  LIMITS: Service<Limits>;
}

/** The longest answer that the model may give, in tokens. */
const MAX_ANSWER = 2000;

export default {
  async fetch(request, env) {
    const prompt = await request.text();
    // A token has approximately four characters.
    const reserved = Math.ceil(prompt.length / 4) + MAX_ANSWER;
    try {
      await env.LIMITS.limit("tokens", { cost: reserved, throws: true });
      const { answer, used } = await askModel(prompt);
      // Give back the tokens that the answer did not use.
      await env.LIMITS.limit("tokens", { cost: Math.min(0, used - reserved) });
      return new Response(answer);
    } catch (error) {
      const limited = RateLimitError.from(error);
      if (!limited) throw error;
      if (limited.retryAfterMs === undefined) {
        return new Response("The question is too long.", { status: 413 });
      }
      const seconds = Math.ceil(limited.retryAfterMs / 1000);
      return new Response("Too many questions at once.", {
        status: 429,
        headers: { "Retry-After": String(seconds) },
      });
    }
  },
} satisfies ExportedHandler<Env>;

/**
 * A placeholder for a call to a model. It returns the model's answer and the number of tokens used.
 */
async function askModel(prompt: string): Promise<{ answer: string; used: number }> {
  const answer = `You said: ${prompt}`;
  return { answer, used: Math.ceil((prompt.length + answer.length) / 4) };
}
