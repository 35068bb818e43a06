import { defineConfig } from "../../src/config/index.ts";
import { weir } from "../../src/index.ts";
import { bindings } from "./bindings.ts";
import { setOverrides } from "./set-overrides.ts";

export { ControlObject } from "../../src/index.ts";

const limiter = weir(defineConfig(JSON.parse(bindings.CONFIG)));

/** Weir, with or without a control object. */
export default {
  async fetch(request, env, ctx) {
    if (request.url.endsWith("/set-overrides")) return await setOverrides();
    return await limiter.fetch(request, env, ctx);
  },
} satisfies ExportedHandler<object>;
