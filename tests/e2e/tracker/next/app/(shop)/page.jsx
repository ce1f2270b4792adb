import Link from "next/link";

export const metadata = { title: "Lamps" };

export default function Home() {
  return (
    <main>
      <h1>Lamps</h1>
      <Link href="/products/lamp?from=home" data-track="product_chosen" data-product="lamp">
        A lamp
      </Link>
    </main>
  );
}
