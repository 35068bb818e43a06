import { forward } from "./forward.ts";

/** The floor: a Worker that forwards and limits nothing. No framework, which would be a cost of its own. */
export default { fetch: (request) => forward(request) } satisfies ExportedHandler;
