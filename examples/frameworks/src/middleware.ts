// For Astro. In an Astro project, import the type MiddlewareHandler from "astro".
import { env } from "cloudflare:workers";
import { weir } from "edge-weir";
import config from "../weir.config.ts";

const limits = weir(config);

export const onRequest: MiddlewareHandler = (context, next) => {
  if (context.isPrerendered) return next();
  return limits.fetch(context.request, env, undefined, () => next());
};

/** The part of Astro's types that this file needs. */
type MiddlewareHandler = (
  context: { readonly request: Request; readonly isPrerendered: boolean },
  next: () => Promise<Response>,
) => Promise<Response>;
