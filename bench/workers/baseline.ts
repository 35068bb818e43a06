import { forward } from "./forward.ts";

/** The baseline: a Worker that only forwards. It uses no framework, because a framework takes time too. */
export default { fetch: (request) => forward(request) } satisfies ExportedHandler;
