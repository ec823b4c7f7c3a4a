import { type RefObject, useEffect, useRef, useState } from 'react'

/**
 * True once the element has been near the screen: a long history does not fetch what is not
 * scrolled to.
 */
export function useSeen<T extends HTMLElement>(): [RefObject<T | null>, boolean] {
  const element = useRef<T>(null)
  const [seen, setSeen] = useState(false)
  useEffect(() => {
    if (element.current === null || seen) return
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) setSeen(true)
      },
      { rootMargin: '400px' },
    )
    observer.observe(element.current)
    return () => observer.disconnect()
  }, [seen])
  return [element, seen]
}
