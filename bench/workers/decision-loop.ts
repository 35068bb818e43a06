import { Hono } from "hono/tiny";
import { defineConfig } from "../../src/config/index.ts";
import { rateLimit } from "../../src/index.ts";
import { bindings, CLIENT_HEADER, LIMITED_PATH } from "./bindings.ts";
import { setOverrides } from "./set-overrides.ts";

export { ControlObject } from "../../src/index.ts";

/**
 * The app without a limiter. The Worker runs an app many times within one request, without an origin. The CPU time of
 * the decisions is the time of the app with a limiter, minus the time of this app.
 */
const bare = new Hono();
bare.all("*", (c) => c.text("ok"));

const limited = new Hono();
limited.use(rateLimit(defineConfig(JSON.parse(bindings.CONFIG))));
limited.all("*", (c) => c.text("ok"));

/**
 * The maximum duration of the loop, in milliseconds. If every decision called Redis, the loop would
 * take minutes.
 */
const LONGEST_MS = 5000;

export default {
  async fetch(request, env, ctx) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/set-overrides") return await setOverrides();
    const app = pathname === LIMITED_PATH ? limited : bare;
    const wanted = Number(searchParams.get("decisions"));
    const headers = { [CLIENT_HEADER]: "203.0.113.1" };
    const startedAt = Date.now();
    let decisions = 0;
    while (decisions < wanted && Date.now() - startedAt < LONGEST_MS) {
      const response = await app.fetch(
        new Request(`http://weir${LIMITED_PATH}`, { headers }),
        env,
        ctx,
      );
      if (!response.ok) return response;
      decisions += 1;
    }
    return Response.json({ decisions });
  },
} satisfies ExportedHandler;
