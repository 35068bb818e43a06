// For Cloudflare Pages.
import { weir } from "edge-weir";
import config from "../weir.config.ts";

const limits = weir(config);

export const onRequest: PagesFunction = (context) => {
  const { request, env, next } = context;
  return limits.fetch(request, env as object, context, (admitted) => next(admitted));
};
