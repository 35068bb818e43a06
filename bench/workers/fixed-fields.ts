import { forward } from "./forward.ts";

/**
 * Forwards, and adds two constant header fields. Every limiter that sends quotas to clients does at least
 * this much work. The headers of a fetched response are immutable, so the Worker copies the response.
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
