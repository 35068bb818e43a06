import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { listen } from "./loopback.ts";

/** How the fake language model answers one call. */
export interface Script {
  /** The tokens of the prompt and of the answer, as the provider counts them. */
  readonly prompt: number;
  readonly answer: number;
  /**
   * The provider breaks the connection after this number of tokens of the answer. It first waits
   * for `holdLast`, so that a test can receive these tokens before the connection breaks.
   */
  readonly breakAfter?: number;
  /** The time until the head of the response, in milliseconds. @default 0 */
  readonly delayMs?: number;
  /** The pause before each token, in milliseconds. @default 0 */
  readonly pauseMs?: number;
  /** The provider waits for this promise before it sends the last token. */
  readonly holdLast?: Promise<unknown>;
  /** The status of the response. With a status of 400 and above, no tokens are used. @default 200 */
  readonly status?: number;
}

/** A call that the provider has received. */
export interface ProviderCall {
  readonly body: Record<string, unknown>;
  readonly headers: IncomingMessage["headers"];
}

export interface LlmProvider extends AsyncDisposable {
  readonly url: string;
  readonly calls: readonly ProviderCall[];
  stop(): Promise<void>;
}

/**
 * Starts a fake language model: a server on loopback with OpenAI's API for chat completions and
 * Anthropic's API for messages. If a call has `stream: true`, each event of the answer has one
 * token.
 *
 * @param scriptFor returns how the provider answers a call
 */
export async function startLlmProvider(
  scriptFor: (call: ProviderCall) => Script,
): Promise<LlmProvider> {
  const calls: ProviderCall[] = [];
  // A server with a timeout could close an idle connection while a request arrives on it.
  const server = createServer({ keepAliveTimeout: 0 }, async (request, response) => {
    try {
      const call = {
        body: (await json(request)) as ProviderCall["body"],
        headers: request.headers,
      };
      calls.push(call);
      await answer(request.url ?? "", call, scriptFor(call), response);
    } catch {
      response.destroy();
    }
  });
  const { host, port, stop } = await listen(server);
  return { url: `http://${host}:${port}`, calls, stop, [Symbol.asyncDispose]: stop };
}

async function answer(
  url: string,
  { body }: ProviderCall,
  script: Script,
  response: ServerResponse,
): Promise<void> {
  const { status = 200, delayMs = 0 } = script;
  if (delayMs > 0) await delay(delayMs);
  if (status >= 400) {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message: "This call has failed." } }));
    return;
  }
  const api = url.endsWith("/messages") ? createMessages(script) : createCompletions(script, body);
  if (body.stream !== true) {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(api.whole()));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  response.write(api.start());
  const closed = new Promise((resolve) => response.once("close", resolve));
  for (let token = 0; token < script.answer; token++) {
    if (token === script.breakAfter) {
      await script.holdLast;
      response.destroy();
      return;
    }
    if (token === script.answer - 1) await script.holdLast;
    if (script.pauseMs) await delay(script.pauseMs);
    if (response.destroyed) return;
    const canContinue = response.write(api.token(token));
    if (!canContinue) await Promise.race([drained(response), closed]);
  }
  response.end(api.end());
}

/** The texts of an answer in the format of one API. */
interface Api {
  whole(): object;
  start(): string;
  token(index: number): string;
  end(): string;
}

function createCompletions({ prompt, answer }: Script, body: Record<string, unknown>): Api {
  const options = (body.stream_options ?? {}) as { include_usage?: boolean };
  const counted = {
    prompt_tokens: prompt,
    completion_tokens: answer,
    total_tokens: prompt + answer,
  };
  const base = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "fake" };
  const chunk = (delta: object) => ({
    ...base,
    choices: [{ index: 0, delta, finish_reason: null }],
    ...(options.include_usage && { usage: null }),
  });
  const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
  return {
    whole: () => ({
      ...base,
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: "word ".repeat(answer) } }],
      usage: counted,
    }),
    start: () => event(chunk({ role: "assistant", content: "" })),
    token: () => event(chunk({ content: "word " })),
    end: () =>
      (options.include_usage ? event({ ...base, choices: [], usage: counted }) : "") +
      "data: [DONE]\n\n",
  };
}

function createMessages({ prompt, answer }: Script): Api {
  const event = (value: { type: string; [name: string]: unknown }) =>
    `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
  const input = { input_tokens: prompt, cache_read_input_tokens: 0 };
  return {
    whole: () => ({
      type: "message",
      content: [{ type: "text", text: "word ".repeat(answer) }],
      usage: { ...input, output_tokens: answer },
    }),
    start: () =>
      event({ type: "message_start", message: { usage: { ...input, output_tokens: 1 } } }),
    token: () =>
      event({
        type: "content_block_delta",
        index: 0,
        delta: { type: "text_delta", text: "word " },
      }),
    end: () =>
      event({
        type: "message_delta",
        delta: { stop_reason: "end_turn" },
        usage: { output_tokens: answer },
      }) + event({ type: "message_stop" }),
  };
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => response.once("drain", resolve));
}
