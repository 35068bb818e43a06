// weir: for a Worker of one's own. What is not here is not kept from one release to the next.
export { CounterObject } from "./stores/counter-object.ts";
export { weir } from "./weir.ts";
