import { DurableObject } from "cloudflare:workers";
export class CounterObject extends DurableObject { hi() { return 1; } }
export default { fetch() { return new Response("hi"); } };
