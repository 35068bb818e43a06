import { onRequest as pages } from "./functions/_middleware.ts";
import { app } from "./src/app.ts";
import { handle } from "./src/hooks.server.ts";
import plain from "./src/index.ts";
import { onRequest as astro } from "./src/middleware.ts";

export { ControlObject, CounterObject } from "./src/index.ts";

interface Env {
  readonly COUNTERS: DurableObjectNamespace;
}

/** Runs the middleware that the request's header names, as its framework does. Only the tests need this Worker. */
export default {
  async fetch(request, env, ctx) {
    const render = async () => app(request);
    // SvelteKit and Pages go on with the request that the middleware passes on.
    const resolve = async (event: { request: Request }) => app(event.request);
    const next = async (admitted: Request) => app(admitted);
    switch (request.headers.get("x-framework")) {
      case "sveltekit":
        return handle({ event: { request, platform: { env, ctx } }, resolve });
      case "sveltekit, prerendering":
        return handle({ event: { request, platform: undefined }, resolve });
      case "astro":
        return astro({ request, isPrerendered: false }, render);
      case "astro, prerendering":
        return astro({ request, isPrerendered: true }, render);
      case "pages":
        return pages({ request, env, next } as unknown as Parameters<typeof pages>[0]);
      default:
        return plain.fetch(request, env, ctx);
    }
  },
} satisfies ExportedHandler<Env>;
