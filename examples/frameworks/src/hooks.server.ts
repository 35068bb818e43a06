// For SvelteKit. In a SvelteKit project, write these two lines instead of the
// types at the end of this file, and of the next import:
//   import type { Handle } from "@sveltejs/kit";
//   import { building, dev } from "$app/environment";
import { building, dev } from "../sveltekit-environment.ts";
import config from "../weir.config.ts";

// SvelteKit loads this file in Node too, while it builds the app and in `vite dev`. Weir cannot be loaded in Node.
const limits = building || dev ? undefined : (await import("edge-weir")).weir(config);

export const handle: Handle = async ({ event, resolve }) => {
  const { platform, request } = event;
  if (!limits || !platform) return resolve(event);
  return limits.fetch(request, platform.env, platform.ctx, (admitted) => {
    event.request = admitted;
    return resolve(event);
  });
};

/** The part of SvelteKit's types that this file needs. */
type Handle = (input: {
  readonly event: RequestEvent;
  readonly resolve: (event: RequestEvent) => Response | Promise<Response>;
}) => Response | Promise<Response>;

interface RequestEvent {
  request: Request;
  /** Undefined while SvelteKit prerenders a page. */
  readonly platform: { readonly env: object; readonly ctx: ExecutionContext } | undefined;
}
