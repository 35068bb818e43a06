import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import { weir } from "../../../src/index.ts";

export const TOKEN = "admin-token-of-more-than-32-characters";
export const READ_TOKEN = "read-token-of-more-than-32-characters!";
export const ORIGIN = "https://api.example.com";

export const RULES: ConfigInput["rules"] = [
  { name: "all", limit: 2, window: "1h", key: "header:x-client | ip" },
];

/** A request below `/_weir/`. */
export interface AdminRequest {
  readonly method?: string;
  readonly token?: string;
  readonly headers?: Record<string, string>;
  readonly body?: BodyInit;
  /** The client's address. */
  readonly ip?: string;
}

/** Creates a Worker in front of an app that answers "app". */
export function createWorker(
  bindings: Record<string, unknown> = {
    WEIR_ADMIN_TOKEN: TOKEN,
    WEIR_ADMIN_READ_TOKEN: READ_TOKEN,
  },
  config: Partial<ConfigInput> = {},
) {
  const worker = weir(
    defineConfig({ rules: RULES, store: "memory", timeoutMs: 10_000, ...config }),
  );
  return async function send(path: string, request: AdminRequest = {}): Promise<Response> {
    const { method = request.body === undefined ? "GET" : "POST", token, body, ip } = request;
    const headers = new Headers({ "cf-connecting-ip": ip ?? "203.0.113.1", ...request.headers });
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    const ctx = createExecutionContext();
    const init = {
      method,
      headers,
      redirect: "manual",
      ...(body !== undefined && { body }),
    } as const;
    const url = new URL(path, ORIGIN);
    const response = await worker.fetch(new Request(url, init), bindings, ctx, async (admitted) => {
      return new Response(`app ${await admitted.text()}`);
    });
    await waitOnExecutionContext(ctx);
    return response;
  };
}

/** A form as browsers send it from a page of Weir. */
export function form(fields: Record<string, string>, headers: Record<string, string> = {}) {
  return {
    method: "POST",
    body: new URLSearchParams(fields).toString(),
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      origin: ORIGIN,
      "sec-fetch-site": "same-origin",
      ...headers,
    },
  };
}

/** Logs in, and returns the header Cookie of the session. */
export async function logIn(send: ReturnType<typeof createWorker>, token = TOKEN): Promise<string> {
  const response = await send("/_weir/login", form({ token }));
  return response.headers.get("set-cookie")?.split(";")[0] ?? "";
}
