import { Hono } from "hono";
import type { AdminEnv } from "./admin-env.ts";

/** The API for programs, below `/_weir/api/`. */
export const apiRoutes = new Hono<AdminEnv>();

apiRoutes.get("/rules", async (c) => c.json({ rules: await c.var.operations.rules() }));
