/** How the larger image of the sandboxes stands, while there is something to say: the launcher writes it, the page shows it. */
import { z } from 'zod'

/** In the data folder. */
export const FULL_IMAGE_FILE = 'run/full-image.json'

export const fullImageState = z.object({ state: z.enum(['building', 'failed']) })
export type FullImageState = z.infer<typeof fullImageState>
