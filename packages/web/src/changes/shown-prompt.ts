/** The prompt that the panel of changes was last opened for. */
import { create } from 'zustand'

export const useShownPrompt = create<{ promptId: string | null }>()(() => ({ promptId: null }))
