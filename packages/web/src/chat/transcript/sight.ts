/**
 * Which blocks of the conversation are near what is read (the others keep their height alone), and
 * that what is read stays where it is when something above it gets another height.
 */
import { type RefObject, useEffect, useState } from 'react'

/** Screens above and below. */
const MARGIN = '150% 0px'
/** The region in which the conversation scrolls. */
const REGION = '[data-scrolls]'
const ROW = '[data-entry]'

type OnSight = (isNear: boolean, height: number) => void

/** Visibility of the blocks of one conversation. */
export class Sight {
  #observers: { near: IntersectionObserver; resized: ResizeObserver } | undefined
  readonly #callbacks = new WeakMap<Element, OnSight>()
  /** The first row that is seen, and how far below the top of the region it begins. */
  #read: { row: Element; top: number } | undefined

  /** `block`: in the document. Answers how to end it. */
  watch(block: HTMLElement, onSight: OnSight): () => void {
    this.#observers ??= this.#observe(block.closest<HTMLElement>(REGION) ?? document.documentElement)
    const { near, resized } = this.#observers
    this.#callbacks.set(block, onSight)
    near.observe(block)
    resized.observe(block)
    return () => {
      near.unobserve(block)
      resized.unobserve(block)
    }
  }

  #observe(region: HTMLElement): { near: IntersectionObserver; resized: ResizeObserver } {
    // One of the two keeps the place, and not every browser does it.
    region.style.overflowAnchor = 'none'
    region.addEventListener('scroll', () => this.#readPlace(region), { passive: true })
    const near = new IntersectionObserver(
      (seen) => {
        for (const { target, isIntersecting, boundingClientRect } of seen)
          this.#callbacks.get(target)?.(isIntersecting, boundingClientRect.height)
      },
      { root: region, rootMargin: MARGIN },
    )
    return { near, resized: new ResizeObserver(() => this.#keepPlace(region)) }
  }

  #readPlace(region: HTMLElement): void {
    const { top, bottom } = region.getBoundingClientRect()
    const row = [...region.querySelectorAll(ROW)].find((one) => one.getBoundingClientRect().bottom > top)
    const isSeen = row !== undefined && row.getBoundingClientRect().top < bottom
    this.#read = isSeen ? { row, top: topOf(row, region) } : undefined
  }

  /** Before anything is painted. */
  #keepPlace(region: HTMLElement): void {
    if (this.#read?.row.isConnected === true) {
      const moved = topOf(this.#read.row, region) - this.#read.top
      if (Math.abs(moved) >= 1) region.scrollTop += moved
    }
    this.#readPlace(region)
  }
}

function topOf(row: Element, region: HTMLElement): number {
  return row.getBoundingClientRect().top - region.getBoundingClientRect().top
}

/**
 * True if the block is to be rendered, and its last height. `isPinned`: wherever it is. `atFirst`:
 * until it is known.
 */
export function useNear(
  sight: Sight,
  block: RefObject<HTMLElement | null>,
  isPinned: boolean,
  atFirst: boolean,
): { isShown: boolean; height: number | undefined } {
  const [isNear, setNear] = useState(atFirst)
  const [height, setHeight] = useState<number>()
  useEffect(() => {
    const element = block.current
    if (element === null) return undefined
    return sight.watch(element, (near, high) => {
      if (!near && isInUse(element)) return
      setNear(near)
      if (!near && element.childElementCount > 0) setHeight(high)
    })
  }, [sight, block])
  return { isShown: isPinned || isNear, height }
}

/** Focus or a selection would be lost with it. */
function isInUse(element: HTMLElement): boolean {
  if (element.contains(document.activeElement)) return true
  const selection = document.getSelection()
  return selection !== null && !selection.isCollapsed && selection.containsNode(element, true)
}
