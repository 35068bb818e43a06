import type { errors as Errors, RedisConfigCloudflare, Requester } from "@upstash/redis/cloudflare";
// Named after its content, which changes with the version: the first lines of the package's
// cloudflare.mjs have the name. Only the package's entries have types.
// @ts-expect-error
import { error_exports, HttpClient } from "../../../node_modules/@upstash/redis/chunk-4WQYU7T6.mjs";
import type { UpstashClient } from "./upstash-client.ts";

export const errors: typeof Errors = error_exports;

/**
 * What wrangler.toml puts in place of `@upstash/redis/cloudflare`: the same HTTP client from the
 * same package, but two commands.
 *
 * The package's own class has all 250 commands as properties, and each is so used in the eyes of a
 * bundler: 16 KiB of gzip, a third of what the Worker may have. The class that this one stands for
 * would do the same with the options that redis-client.ts gives it.
 */
export class Redis implements UpstashClient {
  readonly #http: Requester;

  constructor(config: RedisConfigCloudflare) {
    const headers = { authorization: `Bearer ${config.token}` };
    this.#http = new HttpClient({ ...config, baseUrl: config.url, headers });
  }

  evalsha<Args extends unknown[], Reply>(digest: string, keys: string[], args: Args) {
    return this.#send<Reply>(["evalsha", digest, keys.length, ...keys, ...args]);
  }

  eval<Args extends unknown[], Reply>(script: string, keys: string[], args: Args) {
    return this.#send<Reply>(["eval", script, keys.length, ...keys, ...args]);
  }

  async #send<Reply>(body: unknown[]): Promise<Reply> {
    const { result, error } = await this.#http.request<Reply>({ body });
    if (error) throw new errors.UpstashError(error);
    if (result === undefined) throw new TypeError("Request did not return a result");
    return result;
  }
}
