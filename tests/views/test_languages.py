"""Real sentences in other languages: the right document is found without a setting, and the stemmer is told."""

from __future__ import annotations

import pytest

from clickbridge import BM25, ClickGraph, Document, PairCount
from clickbridge.settings import LANGUAGES
from clickbridge.views.languages import guess_language

COLLECTIONS = {
    "chinese": (
        ["北京是中华人民共和国的首都，也是全国的政治中心。", "长江是亚洲最长的河流，发源于青藏高原。",
         "大熊猫主要生活在四川的竹林里。"],
        ["中国的首都北京", "亚洲最长的河流", "四川大熊猫"],
    ),
    "japanese": (
        ["東京は日本の首都であり、世界最大の都市圏である。", "富士山は日本で最も高い山です。",
         "寿司は酢飯と魚を使った日本料理です。"],
        ["日本の首都 東京", "最も高い山", "魚の寿司"],
    ),
    "arabic": (
        ["القاهرة هي عاصمة جمهورية مصر العربية", "نهر النيل أطول أنهار العالم", "الكسكس طبق تقليدي في بلاد المغرب"],
        ["عاصمة مصر", "أطول نهر النيل", "طبق الكسكس"],
    ),
    "german": (
        ["Berlin ist die Hauptstadt der Bundesrepublik Deutschland.", "Der Rhein fließt durch Köln in die Nordsee.",
         "Brezeln werden mit grobem Salz gebacken."],
        ["Hauptstadt Deutschland", "Rhein bei Koln", "gebackene Brezel mit Salz"],
    ),
    "turkish": (
        ["İstanbul, Türkiye'nin en kalabalık şehridir.", "Kızılırmak Türkiye'nin en uzun ırmağıdır.",
         "Baklava, ceviz ve şerbetle yapılan bir tatlıdır."],
        ["istanbul şehri kalabalık", "en uzun ırmak kızılırmak", "cevizli baklava tatlısı baklava"],
    ),
    "korean": (
        ["서울은 대한민국의 수도이자 최대 도시이다.", "한라산은 제주도에 있는 산이다.",
         "김치는 배추로 만든 한국 음식이다."],
        ["대한민국 수도 서울", "제주도 한라산", "배추 김치"],
    ),
    "russian": (
        ["Москва является столицей России.", "Волга — самая длинная река Европы.", "Борщ варят из свёклы и капусты."],
        ["столица России Москва", "река Волга", "борщ из свеклы"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("language", COLLECTIONS)
def test_the_right_document_without_a_setting(language: str) -> None:
    texts, queries = COLLECTIONS[language]
    docs = [Document(str(number), {"body": text}) for number, text in enumerate(texts)]
    model = BM25().fit(ClickGraph.build([PairCount("x", "0")], docs))
    assert [model.rank(query, 1).doc_ids for query in queries] == [["0"], ["1"], ["2"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [("鞋", ["1"]), ("茶", ["2"]), ("酒", ["3"]), ("KILIF", ["4"]), ("kilif", ["4"]), ("kılıf", ["4"])],
)
def test_short_words_and_capitals(query: str, found: list[str]) -> None:
    """One Han character is a word; the capital of the Turkish ı is that of no other letter."""
    titles = ["运动鞋 男士", "绿茶 礼盒", "赤ワインと日本酒", "Telefon Kılıfı, şeffaf"]
    graph = ClickGraph.build([], [Document(str(n), {"title": title}) for n, title in enumerate(titles, 1)])
    for language in ("auto", "turkish"):
        assert BM25(language=language).fit(graph).rank(query).doc_ids == found


def test_what_is_not_done() -> None:
    """Thai is written without spaces, so a word within a text is not found. Compounds are not split: they are found by
    similar spelling if a query has no known word."""
    docs = [Document("0", {"body": "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย"}), Document("1", {"body": "Fahrradschloss"})]
    graph = ClickGraph.build([PairCount("x", "0")], docs)
    model = BM25(unknown_words="drop").fit(graph)
    assert not model.rank("เมืองหลวง")
    assert not model.rank("schloss")
    assert BM25().fit(graph).rank("schloss").doc_ids == ["1"]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("german", "Die Lieferung ist nicht angekommen und der Kunde möchte sein Geld zurück, aber es ist noch da."),
        (
            "french",
            "La livraison n'est pas arrivée et le client veut que nous lui rendions son argent cette fois.",
        ),
        ("spanish", "El pedido no ha llegado y el cliente quiere que se le devuelva el dinero de la compra por eso."),
        (
            "italian",
            "La consegna non è arrivata e il cliente vuole che gli sia restituito il denaro.",
        ),
        ("english", "The delivery has not arrived and the customer would like to have the money back for this order."),
        ("russian", "Заказ не пришёл, и покупатель хочет вернуть деньги."),
        ("arabic", "لم يصل الطلب ويريد العميل استرداد أمواله"),
        ("english", "Η παραγγελία δεν έφτασε και ο πελάτης θέλει τα χρήματά του πίσω"),  # there is no Greek stemmer
        ("turkish", "Sipariş ulaşmadı ve müşteri parasını geri istiyor, kargo şubesi kapalıymış."),
        ("english", "東京は日本の首都であり"),
        ("english", "Xbox 360 Wireless Controller Black Microsoft"),
    ],
)
def test_the_stemmer_of_a_text(language: str, text: str) -> None:
    assert guess_language([text] * 5, LANGUAGES) == language


def test_few_words_say_nothing() -> None:
    assert guess_language(["und die"], LANGUAGES) == "english"
    assert guess_language([], LANGUAGES) == "english"
