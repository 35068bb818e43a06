// These constants stand for those of SvelteKit's module $app/environment.
export const building = false;
export const dev = false;
