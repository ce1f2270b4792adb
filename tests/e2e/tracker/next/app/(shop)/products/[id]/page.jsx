import { OrderButton } from "../../../order-button";

export async function generateMetadata({ params }) {
  await new Promise((resolve) => setTimeout(resolve, 100)); // as long as a database may take
  return { title: `The ${(await params).id}` };
}

export default async function Product({ params }) {
  const { id } = await params;
  return (
    <main>
      <h1>{id}</h1>
      <OrderButton product={id} />
    </main>
  );
}
