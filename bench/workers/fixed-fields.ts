import { forward } from "./forward.ts";

/**
 * Forwards, and adds two fields that are always the same: the least that any limiter does that shows a
 * client its quotas. A fetched response's headers cannot be changed, so a copy of it is sent.
 */
export default {
  async fetch(request) {
    const response = await forward(request);
    const copy = new Response(response.body, response);
    copy.headers.append("RateLimit-Policy", '"limited";q=100000000;w=3600');
    copy.headers.append("RateLimit", '"limited";r=99999999;t=1800');
    return copy;
  },
} satisfies ExportedHandler;
